/**
 * The workflows as they were before their last patch, for the test that takes a pipeline from one release
 * to the next. A change to a workflow's course begins with a copy of it here.
 */
export { bootstrapWorkflow } from "../../workflows/bootstrap";
export { deploymentWorkflow } from "../../workflows/deployment";
export { jobWorkflow } from "../../workflows/job";
export { pipelineWorkflow } from "./pipeline";
