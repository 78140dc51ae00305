/**
 * Makes files that this process creates accessible to its own user only. Must be imported first.
 */
process.umask(0o077);
