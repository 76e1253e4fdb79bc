"""The embedded model: llama.cpp's OpenAI-compatible server as a supervised child; imports `ipc` only."""
