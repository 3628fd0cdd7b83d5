"""Which file system a path lies on, and whether a ledger may live there.

A ledger rests on three promises of the kernel: an append goes to the end of the file whoever else appends,
a lock keeps others out, and a lock dies with the process that held it. Network file systems keep the first
two sometimes and the third late or never (NFS makes an append of a seek and a write; open(2) and flock(2) of
the Linux manual), so that an item would be asked twice or a ledger torn without a sign. They are refused;
shards on local disks and a merge are the way there.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from earwitness.errors import UsageError

MOUNTS = Path("/proc/self/mountinfo")
NETWORK_TYPES = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "smb2", "afs", "coda", "ncpfs", "lustre", "lnetfs", "gpfs",
        "beegfs", "fhgfs", "ceph", "glusterfs", "orangefs", "pvfs2", "panfs", "wekafs", "davfs", "davfs2",
        "webdav", "afpfs", "moosefs", "quobyte", "dvs", "curvefs", "juicefs", "sshfs", "s3fs",
    }
)  # fmt: skip
"""Types of the kernel, of macOS's ``mount`` and of FUSE (after its prefix) that lie on another machine."""
_NETWORK_FUSE = frozenset(
    {
        "sshfs", "s3fs", "rclone", "gcsfuse", "goofys", "mount-s3", "mountpoint-s3", "blobfuse", "blobfuse2",
        "ceph", "ceph-fuse", "mfs", "smbnetfs", "curlftpfs", "seaweedfs", "hdfs", "alluxio", "geesefs",
        "gvfsd-fuse", "obsfs", "cvmfs2", "cosfs", "ossfs", "jfs", "weed",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: where, of which type, from what."""

    point: Path
    type: str
    source: str

    @property
    def is_network(self) -> bool:
        """Whether it lies on another machine."""
        name = self.type.lower()
        if name in NETWORK_TYPES:
            return True
        inner = name.partition(".")[2] if name.startswith(("fuse.", "fuseblk.")) else ""
        if inner in NETWORK_TYPES or inner in _NETWORK_FUSE:
            return True
        # A bare "fuse" tells its program only by what it says it mounts (user@host:/folder, s3://bucket).
        return name in ("fuse", "macfuse", "osxfuse") and bool(
            re.match(r"(?:[\w.-]+@)?[\w.-]+:/|\w+://", self.source)
        )


def read_mounts(text: str) -> tuple[Mount, ...]:
    """Mounts from a table: ``/proc/self/mountinfo`` (proc(5)) or the output of ``mount`` (macOS, BSD).

    >>> read_mounts("36 35 98:0 / /data rw,noatime shared:1 - nfs4 server:/export rw")[0].type
    'nfs4'
    >>> read_mounts("//me@server/share on /Volumes/share (smbfs, nodev)")[0].point
    PosixPath('/Volumes/share')
    """
    found = []
    for line in text.splitlines():
        before, dash, after = line.partition(" - ")
        fields, described = before.split(" "), after.split(" ")
        if dash and len(fields) >= 6 and len(described) >= 2:
            found.append(Mount(Path(_plain(fields[4])), described[0], _plain(described[1])))
            continue
        told = re.match(r"(.+) on (/.*) \((\w+)[,)]", line)
        if told:
            found.append(Mount(Path(told[2]), told[3], told[1]))
    return tuple(found)


def _plain(text: str) -> str:
    """Undo the octal escapes of the kernel's table."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def mount_of(path: Path, mounts: tuple[Mount, ...]) -> Mount | None:
    """The mount a path lies on, None where the table does not say. The path need not exist yet."""
    place = path.resolve()
    holding = [mount for mount in mounts if place == mount.point or mount.point in place.parents]
    # The longest wins, and of those over one another the last one mounted.
    best = max((len(mount.point.parts) for mount in holding), default=0)
    return next((m for m in reversed(holding) if len(m.point.parts) == best), None)


def mounts_here() -> tuple[Mount, ...]:
    """The mounts of this machine; empty where it does not tell."""
    try:
        return read_mounts(MOUNTS.read_text("utf-8", errors="surrogateescape"))
    except OSError:
        pass
    import shutil
    import subprocess

    program = shutil.which("mount") or shutil.which("mount", path="/sbin:/bin")
    if program is None:
        return ()
    try:
        told = subprocess.run(
            [program], capture_output=True, text=True, errors="replace", timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return read_mounts(told.stdout)


def require_local(path: Path, mounts: tuple[Mount, ...] | None = None) -> None:
    """Refuse a place on a network file system.

    Parameters
    ----------
    mounts: the table to go by; None means this machine's.

    Raises
    ------
    UsageError: the path lies on another machine.

    Examples
    --------
    >>> require_local(Path("/home/me/runs"), read_mounts("1 0 0:1 / / rw - ext4 /dev/sda1 rw"))
    """
    mount = mount_of(path, mounts_here() if mounts is None else mounts)
    if mount is not None and mount.is_network:
        raise UsageError(
            str(path),
            f"lies on a network file system ({mount.type} at {mount.point}), where locks and appends of "
            "several processes cannot be trusted: an item could be asked and paid twice",
            "a folder on a local disk for --out",
            "On several machines give each a part with --shard I/N and a local --out, then join them: "
            "earwitness run merge.",
        )
