import type { BootstrapPlan } from "@forge/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useForge } from "../api/context";
import { describeError } from "../api/errors";
import { Button } from "../ui/button";
import { ErrorBanner } from "../ui/error-banner";
import { TextField } from "../ui/field";
import { Page, Section } from "../ui/page";
import { toast } from "../ui/toasts";
import styles from "./add-worker-page.module.css";
import { FIELDS, type FormValues, machineOf, START } from "./machine-form";

/** Adds a machine over SSH: shows the plan first, then runs it. */
export function AddWorkerPage() {
  const forge = useForge();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [values, setValues] = useState<FormValues>(START);
  const [plan, setPlan] = useState<BootstrapPlan>();
  const planRequest = useMutation({
    mutationFn: () => forge.workers.plan(values.ssh_host, values.ssh_user, machineOf(values)),
    onSuccess: setPlan,
    onError: () => setPlan(undefined),
  });
  const register = useMutation({
    mutationFn: () => forge.workers.register(values.ssh_host, values.ssh_user, machineOf(values)),
    onSuccess: async ({ worker_id }) => {
      toast.ok(`${worker_id} is being set up.`);
      await queries.invalidateQueries({ queryKey: ["workers"] });
      await navigate({ to: "/workers/$workerId", params: { workerId: worker_id } });
    },
  });
  const failed = register.error ?? planRequest.error;
  const refusal = failed ? describeError(failed) : undefined;
  // For an invalid entry of a list, `param` names the entry, e.g. `tags.0`.
  const place = refusal?.param?.split(".")[0];
  const known = FIELDS.some(({ name }) => name === place);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    register.reset();
    planRequest.mutate();
  };
  return (
    <Page title="Add a machine by SSH" narrow above={<Link to="/workers">Workers</Link>}>
      <p className="quiet">
        Forge connects with a key of yours that lies on its server, and installs the agent. Nothing
        is done before you have seen the plan.
      </p>
      {failed && !known && <ErrorBanner what="The machine was not added" error={failed} />}
      <form className={styles.form} onSubmit={submit}>
        {FIELDS.map(({ name, required = false, ...rest }) => (
          <TextField
            key={name}
            {...rest}
            name={name}
            required={required}
            error={place === name ? refusal?.atField : undefined}
            value={values[name]}
            onChange={(text) => {
              setValues({ ...values, [name]: text });
              setPlan(undefined);
            }}
          />
        ))}
        <div className={styles.actions}>
          <Button type="submit" kind={plan ? "secondary" : "primary"} busy={planRequest.isPending}>
            {planRequest.isPending ? "Asking for the plan …" : "Show the plan"}
          </Button>
          {plan && (
            <Button kind="primary" busy={register.isPending} onClick={() => register.mutate()}>
              Set it up
            </Button>
          )}
        </div>
      </form>
      {plan && <Plan plan={plan} />}
    </Page>
  );
}

function Plan({ plan }: { plan: BootstrapPlan }) {
  return (
    <Section title="What will be done">
      <ol className={styles.plan}>
        {plan.plan.map(({ step, does, command }) => (
          <li key={step}>
            <span>{does}</span>
            {command && (
              <pre tabIndex={0}>
                <code>{command}</code>
              </pre>
            )}
          </li>
        ))}
      </ol>
      {Object.entries(plan.files).map(([name, content]) => (
        <details key={name} className={styles.file}>
          <summary>
            Writes <code>{name}</code>
          </summary>
          <pre tabIndex={0}>{content}</pre>
        </details>
      ))}
    </Section>
  );
}
