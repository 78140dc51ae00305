/**
 * The workflows before their last patch, for the test that moves a pipeline from one release to the
 * next. Before you change the command order of a workflow, copy it here.
 */
export { bootstrapWorkflow } from "../../workflows/bootstrap";
export { deploymentWorkflow } from "../../workflows/deployment";
export { jobWorkflow } from "../../workflows/job";
export { pipelineWorkflow } from "./pipeline";
