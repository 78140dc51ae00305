-- For psql: reads the passwords from files, so that they are in no argument and no environment.
\set password `cat /run/secrets/forge_owner_password`
alter role forge_owner password :'password';
\set password `cat /run/secrets/forge_server_password`
alter role forge_server password :'password';
\set password `cat /run/secrets/temporal_password`
alter role temporal password :'password';
