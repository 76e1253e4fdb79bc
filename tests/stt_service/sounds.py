"""Sounds made by code, and files made of sounds: every container people send, and none of them recorded."""

import io
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
from av.audio.resampler import AudioResampler

RATE = 16_000
SPEECH = Path(__file__).resolve().parent.parent / "speech"
# What is said in each clip, in words without signs.
SAID = {
    "amiable_himself": "he might even have been made amiable himself",
    "ask_not": "and so my fellow americans ask not what your country can do for you "
    "ask what you can do for your country",
    "cold_hearted": "unless to be rather cold hearted and rather selfish is to be ill disposed",
    "leisure": "and mister john dashwood had then leisure to consider how much there might be "
    "prudently in his power to do for them",
    "more_amiable": "had he married a more amiable woman he might have been made still more "
    "respectable than he was",
    "young_man": "he was not an ill disposed young man",
}
# (FFmpeg's container, codec, samples a second) as telephones, messengers and browsers make them.
KINDS = {
    "ogg": ("ogg", "libopus", 48_000),
    "m4a": ("mp4", "aac", 44_100),
    "mp3": ("mp3", "libmp3lame", 44_100),
    "wav": ("wav", "pcm_s16le", 16_000),
    "webm": ("webm", "libopus", 48_000),
    "flac": ("flac", "flac", 44_100),
    "aac": ("adts", "aac", 22_050),
}

Samples = npt.NDArray[np.int16]


def clip(name: str) -> Path:
    return SPEECH / f"{name}.ogg"


def samples_of(name: str) -> Samples:
    """A clip's samples, mono, 16 kHz."""
    resampler = AudioResampler(format="s16", layout="mono", rate=RATE)
    with av.open(str(clip(name)), "r") as container:
        frames = [made for frame in container.decode(audio=0) for made in resampler.resample(frame)]
    frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]).astype(np.int16)


def file_of(samples: Samples, kind: str = "wav", layout: str = "mono", rate: int = 0) -> bytes:
    """The samples as a file of that kind."""
    container_name, codec, usual_rate = KINDS[kind]
    rate = rate or usual_rate
    content = io.BytesIO()
    with av.open(content, "w", format=container_name) as container:
        stream = container.add_stream(codec, rate=rate, layout=layout)
        assert isinstance(stream, av.AudioStream)
        resampler = AudioResampler(format=stream.format.name, layout=layout, rate=rate)
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate = RATE
        for made in (*resampler.resample(frame), *resampler.resample(None)):
            container.mux(stream.encode(made))
        container.mux(stream.encode(None))
    return content.getvalue()


def picture_file(container_name: str, codec: str) -> bytes:
    """Ten grey pictures and no sound."""
    content = io.BytesIO()
    with av.open(content, "w", format=container_name) as container:
        stream = container.add_stream(codec, rate=Fraction(10))
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for _ in range(10):
            grey = np.full((64, 64, 3), 128, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(grey, format="rgb24")))
        container.mux(stream.encode(None))
    return content.getvalue()


def silence(seconds: float) -> Samples:
    return np.zeros(int(seconds * RATE), np.int16)


def noise(seconds: float) -> Samples:
    return _whole(np.random.default_rng(1).normal(0, 0.1, int(seconds * RATE)))


def tone(seconds: float) -> Samples:
    return _whole(0.3 * np.sin(2 * np.pi * 440 * _times(seconds)))


def clicks(seconds: float) -> Samples:
    made = np.zeros(int(seconds * RATE))
    made[:: RATE // 4] = 0.9
    return _whole(made)


def music(seconds: float) -> Samples:
    """Chords of decaying tones with overtones over a drum of noise."""
    times = _times(seconds)
    made = np.random.default_rng(2).normal(0, 0.2, len(times)) * np.exp(-(times % 0.5) * 40)
    for number, chord in enumerate(((262, 330, 392), (220, 262, 330), (175, 220, 262), (196, 247, 294))):
        playing = (times // 0.5).astype(int) % 4 == number
        decay = np.exp(-(times % 0.5) * 3)
        for pitch in chord:
            for overtone in (1, 2, 3):
                made += playing * decay * 0.08 / overtone * np.sin(2 * np.pi * pitch * overtone * times)
    return _whole(made)


def _times(seconds: float) -> npt.NDArray[np.float64]:
    return np.arange(int(seconds * RATE)) / RATE


def _whole(samples: npt.NDArray[np.float64]) -> Samples:
    return (np.clip(samples, -1, 1) * 32767).astype(np.int16)
