-- For psql. Reads the passwords from files, so that they appear in no argument and no environment variable.
\set password `cat /run/secrets/forge_owner_password`
alter role forge_owner password :'password';
\set password `cat /run/secrets/forge_server_password`
alter role forge_server password :'password';
\set password `cat /run/secrets/temporal_password`
alter role temporal password :'password';
