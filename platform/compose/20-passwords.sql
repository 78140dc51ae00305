-- Run this with psql. Reading the passwords from files keeps them out of arguments and the environment.
\set password `cat /run/secrets/forge_owner_password`
alter role forge_owner password :'password';
\set password `cat /run/secrets/forge_server_password`
alter role forge_server password :'password';
\set password `cat /run/secrets/temporal_password`
alter role temporal password :'password';
