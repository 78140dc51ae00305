/** Must be imported first: files that this process creates are accessible to its own user only. */
process.umask(0o077);
