"""What the machine code in a report tells: lines, what waits for what, debug builds."""
