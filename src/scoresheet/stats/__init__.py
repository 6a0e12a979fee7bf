"""Statistics on integers: resampling of tasks, intervals, the published row bootstrap. Pure."""
