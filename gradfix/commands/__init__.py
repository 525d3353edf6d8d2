"""What can be asked of gradfix at a shell: a module for each command, wired in `gradfix.cli`."""
