-- Lines that an earlier release gave up for good by their age. Ages count no steps of the clock forward any more, and
-- a line that is too old is looked at again each day: so are these.
update billing_lines set export_due_at = now() where export_due_at = 'infinity' and exported_at is null;
