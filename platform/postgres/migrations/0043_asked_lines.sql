-- Lines that a payment processor was asked about and did not say whether it has them: few, among all that there are.
create index billing_lines_asked on billing_lines (export_asked_at)
  where exported_at is null and cost_usd > 0 and export_asked_at is not null;
