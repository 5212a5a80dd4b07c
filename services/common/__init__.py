"""What every service needs: settings, RPC bootstrap, the tool-host base, fences, ceilings, wording."""
