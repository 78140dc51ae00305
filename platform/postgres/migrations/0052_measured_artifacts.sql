-- What was measured of a completed job's files, from its bill until its manifest is registered, so that both say the same.
-- json and not jsonb: names of files and columns may hold what jsonb refuses.
alter table artifacts add column measured json;
