"""One module for each family of libraries. `contenders(store)` names what it has for a store."""
