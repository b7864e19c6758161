"""What a service does for many users of one log, whatever it speaks: access, sharing, forks, an audit trail."""
