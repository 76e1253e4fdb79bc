"""Speech to text: clips sent to the STT service, and the folder they are stored in."""
