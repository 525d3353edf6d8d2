"""What operations do, as data and what reads it: the table recorded from torch, shapes, frameworks."""
