"""Facts about ncu: its options and failures, the machine that it runs on, the names in its reports."""
