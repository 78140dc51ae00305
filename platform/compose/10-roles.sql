-- Run once by a superuser in an empty Postgres. 20-passwords.sql sets the roles' passwords.
-- forge_owner: owns the schema and runs migrations.
-- forge_server: the role of running servers. `forge-server migrate --grant forge_server` grants it
-- privileges on tables.
-- temporal: owns Temporal's two databases.
create role forge_owner login;
create role forge_server login;
create role temporal login;

create database forge owner forge_owner;
create database temporal owner temporal;
create database temporal_visibility owner temporal;

-- By default, every role may connect to every database and create temporary tables there. Revoke
-- these privileges.
revoke all on database forge from public;
revoke all on database temporal from public;
revoke all on database temporal_visibility from public;
revoke all on database postgres from public;
revoke all on database template1 from public;
grant connect on database forge to forge_server;
