"""Plants single faults in modules outside the core, and shows which of them no test notices."""
