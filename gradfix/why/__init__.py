"""From a traceback that people paste to the line at fault: the failure is a fact, and what explains it is asked."""
