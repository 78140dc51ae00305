export { bootstrapWorkflow } from "./bootstrap";
export { deploymentWorkflow } from "./deployment";
export { jobWorkflow } from "./job";
export { pipelineWorkflow } from "./pipeline";
