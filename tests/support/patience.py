"""How long a test waits for something that always happens: so long that only a hang exceeds it, on a busy machine too."""

PATIENCE_S = 300.0
