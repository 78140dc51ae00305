import type { WorkerDetail } from "@forge/sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useSigned } from "../api/context";
import { describeError } from "../api/errors";
import { Button } from "../ui/button";
import { ConfirmDialog } from "../ui/dialog";
import { toast } from "../ui/toasts";

/** What can be done with a worker in its state. */
export function WorkerActions({ worker }: { worker: WorkerDetail }) {
  const { forge, session } = useSigned();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [isAsking, setAsking] = useState(false);
  const { worker_id: id } = worker;
  const act = useMutation({
    mutationFn: async ({ run }: { run: () => Promise<unknown>; done: string }) => await run(),
    onSuccess: (_answer, { done }) => toast.ok(done),
    onError: (error) => toast.error(describeError(error).message),
    onSettled: () => queries.invalidateQueries({ queryKey: ["workers"] }),
  });
  const isServing = worker.status === "idle" || worker.status === "busy";
  const remove = (): void =>
    act.mutate(
      { run: () => forge.workers.remove(id), done: `${id} is out of the fleet.` },
      {
        onSuccess: () => void navigate({ to: "/workers" }),
        onSettled: () => setAsking(false),
      },
    );
  return (
    <>
      {isServing && (
        // One button, which keeps the focus when it turns into its opposite.
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
                ? { run: () => forge.workers.undrain(id), done: `${id} takes jobs again.` }
                : {
                    run: () => forge.workers.drain(id),
                    done: `${id} finishes its job and takes no other.`,
                  },
            )
          }
        >
          {worker.draining ? "Undrain" : "Drain"}
        </Button>
      )}
      {worker.status === "error" && session.scope === "admin" && (
        <Button
          busy={act.isPending}
          onClick={() =>
            act.mutate({ run: () => forge.workers.reset(id), done: `${id} is back in service.` })
          }
        >
          Reset
        </Button>
      )}
      {worker.bootstrap && (worker.status === "error" || worker.status === "dead") && (
        <Button
          busy={act.isPending}
          onClick={() =>
            act.mutate({
              run: () => forge.workers.bootstrap(id),
              done: `${id} is being set up again.`,
            })
          }
        >
          Set up again
        </Button>
      )}
      <Button kind="danger" onClick={() => setAsking(true)}>
        Decommission
      </Button>
      <ConfirmDialog
        open={isAsking}
        onClose={() => setAsking(false)}
        title={`Decommission ${id}?`}
        action="Decommission"
        busy={act.isPending}
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
