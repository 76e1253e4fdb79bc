"""The OpenAI API: chat completions, responses, models and transcriptions, as sessions and turns."""
