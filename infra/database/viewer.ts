/**
 * Whose rows a statement may show: those of one tenant, by its user_id, or everybody's: `null`, for an
 * admin. Every statement that reads a tenant's data for an API takes one.
 */
export type Viewer = string | null;
