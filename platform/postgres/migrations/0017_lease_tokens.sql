-- Of attempts whose worker asked with one: whoever does not show it can do nothing with them.
alter table attempts add column lease_token text;
