"""Mix scenes with scaper: run by ``benchmarks.mixing`` in scaper's own environment. Nothing of Earwitness is here.

    python _scaper_mixing.py SCENES.json

The file lists scenes of (kind, label, file, start, seconds); every turn and every sound is a foreground event. Prints one
JSON object: CPU-seconds of every scene after a first one, and the peak of the memory.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

SNR_DB = 12
"""Over the background: what speech and sounds stand at in a scene of ours."""


def main() -> None:
    import scaper

    warnings.filterwarnings("ignore")
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        for number, scene in enumerate(request["scenes"]):
            start = time.process_time()
            mixer = scaper.Scaper(
                scene["seconds"], request["foreground"], request["background"], random_state=number
            )
            mixer.sr = request["rate"]
            mixer.ref_db = -32
            for event in scene["events"]:
                label, source = ("const", event["label"]), ("const", event["file"])
                if event["background"]:
                    mixer.add_background(label, source, ("const", 0))
                    continue
                mixer.add_event(
                    label, source, ("const", 0), ("const", event["start_s"]),
                    ("const", event["seconds"]), ("const", SNR_DB), None, None,
                )  # fmt: skip
            mixer.generate(
                str(out / f"{number}.wav"), str(out / f"{number}.jams"), reverb=request["reverb"],
                disable_instantiation_warnings=True,
            )  # fmt: skip
            spent.append(time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump({"version": scaper.__version__, "cpu_s": spent[1:], "peak_mib": peak}, sys.stdout)


if __name__ == "__main__":
    main()
