"""Orders from the supervisor to a worker: a datagram and its descriptors."""

import os
import socket

import msgspec

from ipc.codec import Decoder
from ipc.service_messages import Fork, ToZygote

# A Fork has a few paths; a datagram near this size is no Fork.
DATAGRAM_BYTES_MAX = 64 * 1024
# Passed with a Fork: the log, and the channels for frames and pulses.
_DESCRIPTORS = 3
decoder: Decoder[ToZygote] = Decoder(ToZygote)


def receive(pair: socket.socket) -> tuple[bytes, list[int]]:
    """Returns a datagram and its descriptors, which programs executed later do not inherit."""
    frame, descriptors, _, _ = socket.recv_fds(pair, DATAGRAM_BYTES_MAX, _DESCRIPTORS)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return frame, descriptors


def take(line: socket.socket) -> Fork:
    """In a worker: waits for the order and makes its log standard output; exits if none comes."""
    frame, descriptors = receive(line)
    if not frame:
        os._exit(0)
    order = decoder.decode(frame)
    assert isinstance(order, Fork)
    log, frames, pulse = descriptors
    for standard in (1, 2):
        os.dup2(log, standard)
    os.close(log)
    line.close()
    return msgspec.structs.replace(order, frames=frames, pulse=pulse)


def close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
