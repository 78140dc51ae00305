-- Who asked for a job's end: a key's name, or what asked for it in a user's place.
alter table jobs add column cancelled_by text;
