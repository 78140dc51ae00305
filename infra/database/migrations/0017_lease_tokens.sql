-- Of attempts whose worker asked for one: requests about their files must show it.
alter table attempts add column lease_token text;
