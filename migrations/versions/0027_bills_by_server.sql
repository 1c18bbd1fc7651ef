-- Two servers may have models of one name at different prices. Bills of before stay under the empty address, where
-- workers of the release before look for them. For all others the next call of each model goes ahead, and its bill is
-- learned anew: which server had billed what is not known.
alter table agentmesh.model_bills
  drop constraint model_bills_pkey,
  add address text not null default '' check (octet_length(address) <= 4000),   -- the server's base URL, without password and query
  add primary key (model, address);

alter table agentmesh.reservations add address text not null default '' check (octet_length(address) <= 4000);   -- of the server that is asked

-- Drawn by the worker for each call: a call that is booked because its answer was refused may have been booked with it.
alter table agentmesh.model_calls add nonce uuid;
