import type { WorkerDetail } from "@forge/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useSigned } from "../api/context";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialog";
import { toast } from "../ui/toasts";

interface Act {
  run: () => Promise<unknown>;
  done: string;
  /** The title of the error message if `run` fails. Undefined if a dialog shows the error. */
  failed?: string;
}

/** The actions that the worker's state allows. */
export function WorkerActions({ worker }: { worker: WorkerDetail }) {
  const { forge, session } = useSigned();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [isConfirming, setConfirming] = useState(false);
  const { worker_id: id } = worker;
  const act = useMutation({
    mutationFn: async ({ run }: Act) => await run(),
    onSuccess: (_answer, { done }) => toast.ok(done),
    onError: (error, { failed }) => {
      if (failed) toast.refused(failed, error);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["workers"] }),
  });
  const button = (label: string, change: Act) => (
    <Button busy={act.isPending} onClick={() => act.mutate(change)}>
      {label}
    </Button>
  );
  const isServing = worker.status === "idle" || worker.status === "busy";
  const remove = (close: () => void): void =>
    act.mutate(
      { run: () => forge.workers.remove(id), done: `${id} is out of the fleet.` },
      {
        onSuccess: () => {
          close();
          void navigate({ to: "/workers" });
        },
      },
    );
  return (
    <>
      {isServing && (
        // One button for both actions, so that the focus stays when the action changes.
        <Button
          busy={act.isPending}
          title={
            worker.draining
              ? "Lets it take jobs again"
              : "Lets it finish its job, and take no other"
          }
          onClick={() =>
            act.mutate(
              worker.draining
                ? {
                    run: () => forge.workers.undrain(id),
                    done: `${id} takes jobs again.`,
                    failed: "The worker still drains",
                  }
                : {
                    run: () => forge.workers.drain(id),
                    done: `${id} finishes its job and takes no other.`,
                    failed: "The worker does not drain",
                  },
            )
          }
        >
          {worker.draining ? "Undrain" : "Drain"}
        </Button>
      )}
      {worker.status === "error" &&
        session.scope === "admin" &&
        button("Reset", {
          run: () => forge.workers.reset(id),
          done: `${id} is back in service.`,
          failed: "The worker was not reset",
        })}
      {worker.bootstrap &&
        (worker.status === "error" || worker.status === "dead") &&
        button("Set up again", {
          run: () => forge.workers.bootstrap(id),
          done: `${id} is being set up again.`,
          failed: "The worker is not set up again",
        })}
      <Button
        kind="danger"
        onClick={() => {
          act.reset();
          setConfirming(true);
        }}
      >
        Decommission
      </Button>
      <ConfirmDialog
        open={isConfirming}
        onClose={() => setConfirming(false)}
        title={`Decommission ${id}?`}
        action="Decommission"
        change={act}
        refused="The worker was not decommissioned"
        onConfirm={remove}
      >
        <p>It leaves the fleet at once.</p>
        {worker.current_job_id && (
          <p>Its job goes to another worker. Drain it first to let the job finish.</p>
        )}
      </ConfirmDialog>
    </>
  );
}
