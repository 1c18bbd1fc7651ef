"""Settings: defaults, configuration files, environment and flags, read once, checked, frozen."""
