"""A file system whose server does not answer: a process that reads there waits in the kernel, killed or not.

It is FUSE without a library: the kernel's requests are read from /dev/fuse, and only the first, by which
kernel and server agree on a version, is answered. A request that the server has read is one that the kernel
waits for until the connection ends.
"""

import ctypes
import os
import struct
import threading
from pathlib import Path

import pytest

_DEVICE = "/dev/fuse"
_NO_SUID, _NO_DEVICES, _DETACH = 2, 4, 2
_REQUEST = struct.Struct("IIQ")  # length, operation, number
_ANSWER = struct.Struct("IiQ")  # length, error, number
# fuse_init_out of version 7.31: nothing is promised.
_AGREED = struct.pack("IIIIHHIIHHI7I", 7, 31, 0, 0, 0, 0, 4096, 0, 0, 0, 0, *[0] * 7)
_REQUEST_BYTES_MAX = 256 * 1024


class StuckDisk:
    """Mounted at a folder; `let_go` ends the connection, and with it whatever waits for it."""

    def __init__(self, at: Path) -> None:
        at.mkdir()
        self._at = at
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            self._server = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC)
            self._mount()
        except OSError as error:
            pytest.skip(f"this host mounts no file system of ours: {error.strerror}")
        _, _, number = _REQUEST.unpack_from(os.read(self._server, _REQUEST_BYTES_MAX))
        os.write(self._server, _ANSWER.pack(_ANSWER.size + len(_AGREED), 0, number) + _AGREED)
        self.was_asked = threading.Event()
        threading.Thread(target=self._take_the_next, daemon=True).start()

    def let_go(self) -> None:
        """Every process that waits here is answered with an error, and those that were killed end."""
        if self._server >= 0:
            self._libc.umount2(os.fsencode(self._at), _DETACH)
            server, self._server = self._server, -1
            os.close(server)

    def _mount(self) -> None:
        # Whoever may see the folder may ask: agents have another user id.
        options = f"fd={self._server},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
        flags = ctypes.c_ulong(_NO_SUID | _NO_DEVICES)
        if self._libc.mount(b"stuck", os.fsencode(self._at), b"fuse", flags, options.encode()) != 0:
            os.close(self._server)
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def _take_the_next(self) -> None:
        """From here on the kernel waits for the answer, whatever happens to the process that asked."""
        os.read(self._server, _REQUEST_BYTES_MAX)
        self.was_asked.set()
