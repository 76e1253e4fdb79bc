"""Metrics, health, the log, and notifications to systemd."""
