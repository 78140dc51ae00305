-- Run this file with psql. It reads the passwords from files, so that no password appears in a
-- command line or in an environment variable.
\set password `cat /run/secrets/forge_owner_password`
alter role forge_owner password :'password';
\set password `cat /run/secrets/forge_server_password`
alter role forge_server password :'password';
\set password `cat /run/secrets/temporal_password`
alter role temporal password :'password';
