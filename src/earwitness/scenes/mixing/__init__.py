"""The mixer: from spoken turns, takes and rooms to scenes, with everything measured that a label rests on.

``preset`` (data) and ``draws`` decide, ``planning`` puts a scene's decisions together, ``placement`` makes a timeline,
``sources``, ``acoustics`` and ``buses`` make sound, ``levels`` measure it, ``render`` adds it up, ``twins`` leave
something out, ``describing`` writes it down as a ``manifest``, and ``stage`` does so for a corpus.
"""
