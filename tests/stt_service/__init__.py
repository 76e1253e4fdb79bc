"""Tests of the STT service with real speech, the real model and files that hurt."""
