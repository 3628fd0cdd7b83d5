"""Ledgers live on local disks: network file systems are told by the mount table and refused with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from earwitness.errors import UsageError
from earwitness.runs import filesystems
from earwitness.runs.filesystems import Mount, mount_of, mounts_here, read_mounts, require_local
from earwitness.runs.ledger import Ledger

LINUX = r"""
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
31 27 0:50 / /home rw,relatime shared:5 master:2 - nfs4 server:/export/home rw,vers=4.2
32 31 0:51 / /home/me/local\040disk rw - xfs /dev/sdb1 rw
33 27 0:52 / /mnt/share rw - cifs //server/share rw
34 27 0:53 / /mnt/ssh rw - fuse.sshfs me@server:/data rw
35 27 0:54 / /mnt/ntfs rw - fuseblk /dev/sdc1 rw
36 27 0:55 / /scratch rw - lustre 10.0.0.1@tcp:/lustre rw
37 27 0:56 / /mnt/plain rw - fuse s3://bucket rw
38 27 0:57 / /mnt/image rw - fuse.squashfuse image.sqfs ro
39 27 0:58 / /over rw - nfs server:/x rw
40 27 0:59 / /over rw - tmpfs tmpfs rw
41 27 0:60 / /ceph rw - fuse.ceph-fuse ceph-fuse rw
""".strip()
MAC = """
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//me@server/share on /Volumes/share (smbfs, nodev, nosuid, mounted by me)
server:/export on /Volumes/my nfs (nfs, nodev)
""".strip()


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/home/me/runs", "nfs4"), ("/mnt/share/runs/x", "cifs"), ("/mnt/ssh/runs", "fuse.sshfs"),
        ("/scratch/runs", "lustre"), ("/mnt/plain/runs", "fuse"), ("/ceph/runs", "fuse.ceph-fuse"),
    ],
)  # fmt: skip
def test_network_file_systems_are_refused_with_the_reason(place: str, kind: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_local(Path(place), read_mounts(LINUX))
    assert f"lies on a network file system ({kind} at " in str(caught.value)
    assert "asked and paid twice" in str(caught.value)
    assert "--shard I/N" in str(caught.value)
    assert "earwitness run merge" in str(caught.value)


@pytest.mark.parametrize(
    "place",
    ["/data/runs", "/home/me/local disk/runs", "/mnt/ntfs/runs", "/mnt/image/x", "/over/runs", "/homework"],
)  # fmt: skip
def test_local_ones_are_not(place: str) -> None:
    require_local(Path(place), read_mounts(LINUX))


def test_the_table_of_macos_is_read() -> None:
    mounts = read_mounts(MAC)
    assert [mount.type for mount in mounts] == ["apfs", "apfs", "smbfs", "nfs"]
    assert mounts[3].point == Path("/Volumes/my nfs")
    for place in ("/Volumes/share/runs", "/Volumes/my nfs/runs"):
        with pytest.raises(UsageError, match="network file system"):
            require_local(Path(place), mounts)
    require_local(Path("/Users/me/runs"), mounts)


def test_what_nobody_knows_is_allowed() -> None:
    assert read_mounts("nonsense\n\n - \n1 2 3 - x") == ()
    assert mount_of(Path("/anywhere"), ()) is None
    require_local(Path("/anywhere"), ())


def test_a_ledger_on_a_network_file_system_is_not_opened_for_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = (Mount(Path("/"), "ext4", "/dev/x"), Mount(tmp_path.resolve(), "nfs4", "server:/x"))
    path = tmp_path / "run" / "ledger.jsonl"
    with Ledger(path, shared=True):
        pass
    monkeypatch.setattr(filesystems, "mounts_here", lambda: here)
    for shared in (False, True):
        with pytest.raises(UsageError, match="nfs4 at"):
            Ledger(path, shared=shared)
    # Reading is safe anywhere.
    Ledger(path, read_only=True).close()


def test_this_machine_has_a_root() -> None:
    assert any(mount.point == Path("/") for mount in mounts_here())
