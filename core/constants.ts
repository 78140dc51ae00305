/** Maximum attempts of any job (contract.md, Constants). */
export const MAX_ATTEMPTS = 3;
