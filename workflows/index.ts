export { bootstrapWorkflow } from "./bootstrap";
export { deploymentWorkflow } from "./deployment";
export { jobWorkflow, submittedJobWorkflow } from "./job";
export { pipelineWorkflow } from "./pipeline";
