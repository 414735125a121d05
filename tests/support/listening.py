"""Which addresses a process and its children listen on, as the kernel tells."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LISTENS = "0A"  # the state of a socket in /proc/net/tcp


def listening_addresses(process: int) -> set[str]:
    """Return the IP addresses on which a process, or one below it, waits for others."""
    own = {inode for each in _family(process) for inode in _sockets(each)}
    return {
        address
        for name, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6))
        for inode, address in _listening(Path("/proc/net") / name, family)
        if inode in own
    }


def _listening(table: Path, family: int) -> list[tuple[str, str]]:
    """Return the inode and the address of every socket in a table that listens."""
    found = []
    for line in table.read_text().splitlines()[1:]:
        words = line.split()
        raw = bytes.fromhex(words[1].partition(":")[0])  # words of 32 bits, reversed
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
        if words[3] == LISTENS:
            found.append((words[9], socket.inet_ntop(family, raw)))
    return found


def _sockets(process: int) -> Iterator[str]:
    """Yield the inodes of the sockets that a process has open."""
    with suppress(OSError):  # it has ended
        for each in os.listdir(f"/proc/{process}/fd"):
            with suppress(OSError):  # it was closed: the one that was listed, of ours
                link = os.readlink(f"/proc/{process}/fd/{each}")
                if found := re.match(r"socket:\[(\d+)", link):
                    yield found[1]


def _family(process: int) -> list[int]:
    """Return a process and all that it started, and that those started."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(
                path.read_text().rpartition(")")[2].split()[1]
            )
        except OSError:
            continue
    found = [process]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found
