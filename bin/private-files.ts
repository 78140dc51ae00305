/** Imported before anything else: what this process makes is for its own user, whatever the umask was. */
process.umask(0o077);
