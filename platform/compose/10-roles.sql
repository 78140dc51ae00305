-- Run once by a superuser of an empty Postgres. Each role gets its password in 20-passwords.sql.
-- forge_owner: owns the schema and runs migrations. forge_server: what servers connect as; `forge-server
-- migrate --grant forge_server` gives it rights on tables. temporal: Temporal's own two databases.
create role forge_owner login;
create role forge_server login;
create role temporal login;

create database forge owner forge_owner;
create database temporal owner temporal;
create database temporal_visibility owner temporal;

-- Every role may connect to every database and make temporary tables there until this is revoked.
revoke all on database forge from public;
revoke all on database temporal from public;
revoke all on database temporal_visibility from public;
revoke all on database postgres from public;
revoke all on database template1 from public;
grant connect on database forge to forge_server;
