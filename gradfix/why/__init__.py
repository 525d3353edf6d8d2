"""From a traceback to the line at fault: the failure is a fact, and what would explain it is asked."""
