"""The recorder: runs the real program under torch and records the facts that the tape simulates."""
