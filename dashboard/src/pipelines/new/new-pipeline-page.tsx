import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef } from "react";
import { SWEEP, TEMPLATE_STEPS } from "../../jobs/declared-types";
import { CodeExamples } from "../../submit/code-examples";
import { fieldOnBlur } from "../../submit/field-on-blur";
import { Button } from "../../ui/button";
import { ErrorBanner, Notice } from "../../ui/error-banner";
import { plural } from "../../ui/format";
import { Page } from "../../ui/page";
import { TEMPLATES, type TemplateName } from "../search";
import { includedSteps, stepOf } from "./draft";
import styles from "./new-pipeline-page.module.css";
import { PipelineEstimate } from "./pipeline-estimate";
import { PipelineOptions } from "./pipeline-options";
import { snippetsOf } from "./snippets";
import { StepForm } from "./step-form";
import { TEMPLATE_TEXTS } from "./templates";
import { useNewPipeline } from "./use-new-pipeline";
import { usePipelineEstimate } from "./use-pipeline-estimate";

const route = getRouteApi("/pipelines/new");

export function NewPipelinePage() {
  const { template = "byo-data" } = route.useSearch();
  const navigate = useNavigate();
  const form = useNewPipeline(template);
  const estimate = usePipelineEstimate(form.body, form.isComplete);
  const element = useRef<HTMLFormElement>(null);
  const { draft, problemAt, problemCount, isWrong, tries } = form;
  // Moves the focus to the first invalid field.
  useEffect(() => {
    if (tries === 0 || !isWrong) return;
    element.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus();
  }, [tries, isWrong]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    form.submit();
  };
  const included = includedSteps(template, draft);
  return (
    <Page title="New pipeline" above={<Link to="/pipelines">Pipelines</Link>}>
      <div className={styles.columns}>
        <form
          ref={element}
          className={styles.form}
          onSubmit={submit}
          onBlur={(event) => {
            const field = fieldOnBlur(event);
            const step = field?.closest<HTMLElement>("[data-step]");
            if (step) form.markVisited(`params.${step.dataset.step}.${field?.dataset.field}`);
          }}
          noValidate
        >
          <Templates
            value={template}
            onChange={(next) =>
              navigate({ to: "/pipelines/new", search: { template: next }, replace: true })
            }
          />
          <PipelineOptions draft={draft} problemAt={problemAt} onChange={form.change} />
          {TEMPLATE_STEPS[template].map((type) => (
            <StepForm
              key={type}
              type={type}
              step={stepOf(draft, type)}
              included={included}
              problemAt={problemAt}
              onChange={(change) => form.changeStep(type, change)}
              {...(type === SWEEP.varied && {
                sweep: { text: draft.sweep, onChange: (sweep) => form.change({ sweep }) },
              })}
            />
          ))}
          <div className={styles.end}>
            {form.error && <ErrorBanner what="The pipeline was refused" error={form.error} />}
            {problemCount > 0 && (
              <Notice tone="danger">
                {plural(problemCount, "field")} {problemCount === 1 ? "is" : "are"} missing or
                wrong.
              </Notice>
            )}
            <Button kind="primary" type="submit" busy={form.isBusy}>
              {form.isBusy ? "Submitting …" : `Submit ${plural(included.length, "step")}`}
            </Button>
          </div>
        </form>
        <aside className={styles.aside}>
          <PipelineEstimate {...estimate} />
          <CodeExamples codes={snippetsOf(form.body, location.origin)} />
        </aside>
      </div>
    </Page>
  );
}

function Templates({
  value,
  onChange,
}: {
  value: TemplateName;
  onChange: (template: TemplateName) => void;
}) {
  return (
    <fieldset className={styles.templates}>
      <legend>Template</legend>
      {TEMPLATES.map((template) => (
        <label key={template} className={styles.template}>
          <input
            type="radio"
            name="template"
            checked={template === value}
            onChange={() => onChange(template)}
          />
          <span>
            <strong>{TEMPLATE_TEXTS[template]}</strong>
            <span className={styles.quiet}>
              {template}: {TEMPLATE_STEPS[template].join(" → ")}
            </span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
