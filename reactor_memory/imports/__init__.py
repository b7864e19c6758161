"""Conversations that other software left: files and tables, each form read by a module of its own, stored by one."""
