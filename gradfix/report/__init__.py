"""The formats that an outcome is shown in: one file each."""
