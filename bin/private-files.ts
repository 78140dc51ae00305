/**
 * Makes files that this process creates accessible to its own user only. Import this module first:
 * it has no effect on files that other modules create earlier.
 */
process.umask(0o077);
